// English.
export default {
  "skip": "To the content",
  "glossary": "Glossary", "glossary.open": "What does this word mean?", "glossary.all": "All words", "working": "Working …", "menu": "Model, language and tools", "screen.chat": "Chat", "screen.inside": "Inside", "screen.decode": "Decode", "screen.model": "Model", "screen.train": "Train", "screen.trust": "Trust",
  "text": "Text", "image": "Picture", "source": "Source", "target": "What was written", "look": "Look inside", "looking": "Computing …", "look.memory": "It takes up to {said} beside the weights.",
  "link": "Copy link", "link.done": "The link is copied.", "link.none": "The browser does not let this page copy: the address above is the link.", "gone": "The server does not answer. Is it still running?", "look.first": "What the model computes for a text stands here once it has read one.", "theme": "Light or dark", "language": "Language", "help": "Keys", "save": "Save as a file", "save.none": "Look inside a text first.",
  "checks": "{passed} of {all} checks pass", "check.bound": "{value}, at most {bound}", "failed": "This view failed: {why}",
  "layer": "Block", "head": "Head", "query": "Looking token", "key": "Token looked at", "head.all": "All heads",
  "export.png": "PNG", "export.svg": "SVG", "export.csv": "CSV", "export.safetensors": "safetensors", "table": "As a table", "picture": "As a picture",
  "offline": "Saved page: it shows what was saved with it.", "key.needed": "This server needs its key.", "key.label": "Key", "key.use": "Use the key",
  "keys.title": "Keys", "keys.close": "Close",
  "keys.token": "previous or next token", "keys.layer": "block above or below", "keys.head": "previous or next head", "keys.stop": "next view", "keys.search": "find a token", "keys.unlock": "let go", "keys.help": "this list", "keys.diff": "difference from the run without edits", "keys.go": "go to a head, such as 5.3",
  "search": "Find a token", "go": "Block.head", "tokens": "Tokens", "model.facts": "{family}, {parameters} parameters, {dtype} on {device}",
  "vector.all": "all {count}", "vector.few": "fewer", "vector.cells": "numbers",
  "explain.rest": "{count} more", "explain.title": "Where a number comes from", "explain.others": "and {count} more, together {value}", "explain.check": "{value} by the formula, {recorded} recorded; apart by {off}", "explain.of": "where {name} comes from",
  "explain.head": "head", "explain.token": "token", "explain.channel": "channel", "explain.class": "class", "explain.vocabulary": "vocabulary", "explain.place": "place",
};
