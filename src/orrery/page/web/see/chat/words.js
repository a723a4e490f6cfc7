// The words of the chat.
export default {
  en: {
    "chat.you": "You", "chat.model": "Model", "chat.before": "Text", "chat.after": "Continuation", "chat.source": "Source", "chat.target": "Target",
    "chat.empty": "Nothing has been said. Conversations stay in this page until you save them.", "chat.say": "Say something", "chat.write": "Write the beginning of a text", "chat.translate": "Write a source",
    "chat.send": "Send", "chat.stop": "Stop", "chat.edit": "Edit", "chat.again": "Another answer", "chat.inside": "See inside", "chat.keep": "Use this", "chat.cancel": "Cancel", "chat.previous": "The version before", "chat.next": "The next version", "chat.of": "{n} of {all}",
    "chat.system": "System prompt", "chat.drawing": "How tokens are drawn", "chat.usual": "as the model says", "chat.any": "another each time", "chat.temperature": "Temperature", "chat.top_p": "Top-p", "chat.top_k": "Top-k", "chat.max_tokens": "Most tokens", "chat.seed": "Seed",
    "chat.about.temperature": "Divides the logits; 0 takes the most probable token.", "chat.about.top_p": "The mass that stays possible.", "chat.about.top_k": "How many tokens stay possible.", "chat.about.max_tokens": "The most tokens of an answer.", "chat.about.seed": "The same seed gives the same answer; each further answer to the same words adds one.",
    "chat.colour": "Colour by", "chat.colour.none": "nothing", "chat.colour.probability": "probability", "chat.colour.entropy": "entropy", "chat.colour.rank": "rank",
    "chat.legend.probability": "No colour: probability 1. Full colour: 0.", "chat.legend.entropy": "Nats at the place, at least: what is not among the 20 most probable counts as one token. Full colour: {most}.", "chat.legend.rank": "No colour: the most probable token. Full colour: none of the 20 most probable; in between by the logarithm.",
    "chat.new": "New conversation", "chat.save": "Save as JSON", "chat.open": "Open JSON", "chat.check": "the bytes of the tokens, joined, are the text",
    "chat.token": "Token {n}: {text}", "chat.alternatives": "What could have stood here, before temperature and filters", "chat.p": "probability", "chat.rank": "rank", "chat.rank.beyond": "{n} or more", "chat.entropy": "entropy, at least", "chat.continue": "Continue from this one", "chat.fixed": "No answer of an encoder-decoder is continued from a token.",
    "chat.finish.length": "The most tokens were reached.", "chat.stopped": "Stopped.", "chat.changed": "Written by hand.", "chat.close": "Close",
  },
  de: {
    "chat.you": "Du", "chat.model": "Modell", "chat.before": "Text", "chat.after": "Fortsetzung", "chat.source": "Quelle", "chat.target": "Ziel",
    "chat.empty": "Noch ist nichts gesagt. Gespräche bleiben in dieser Seite, bis sie gespeichert werden.", "chat.say": "Etwas sagen", "chat.write": "Den Anfang eines Textes schreiben", "chat.translate": "Eine Quelle schreiben",
    "chat.send": "Senden", "chat.stop": "Anhalten", "chat.edit": "Ändern", "chat.again": "Andere Antwort", "chat.inside": "Hineinsehen", "chat.keep": "Übernehmen", "chat.cancel": "Abbrechen", "chat.previous": "Vorige Fassung", "chat.next": "Nächste Fassung", "chat.of": "{n} von {all}",
    "chat.system": "Systemanweisung", "chat.drawing": "Wie Tokens gezogen werden", "chat.usual": "wie das Modell sagt", "chat.any": "jedes Mal eine andere", "chat.temperature": "Temperatur", "chat.top_p": "Top-p", "chat.top_k": "Top-k", "chat.max_tokens": "Höchstens Tokens", "chat.seed": "Startzahl",
    "chat.about.temperature": "Teilt die Logits; 0 nimmt das wahrscheinlichste Token.", "chat.about.top_p": "Die Masse, die möglich bleibt.", "chat.about.top_k": "Wie viele Tokens möglich bleiben.", "chat.about.max_tokens": "Die meisten Tokens einer Antwort.", "chat.about.seed": "Dieselbe Startzahl gibt dieselbe Antwort; jede weitere auf dieselben Worte zählt eins weiter.",
    "chat.colour": "Färben nach", "chat.colour.none": "nichts", "chat.colour.probability": "Wahrscheinlichkeit", "chat.colour.entropy": "Entropie", "chat.colour.rank": "Rang",
    "chat.legend.probability": "Ohne Farbe: Wahrscheinlichkeit 1. Volle Farbe: 0.", "chat.legend.entropy": "Nats an der Stelle, mindestens: Was nicht unter den ersten 20 ist, zählt als ein Token. Volle Farbe: {most}.", "chat.legend.rank": "Ohne Farbe: das wahrscheinlichste Token. Volle Farbe: keines der 20 wahrscheinlichsten; dazwischen nach dem Logarithmus.",
    "chat.new": "Neues Gespräch", "chat.save": "Als JSON speichern", "chat.open": "JSON öffnen", "chat.check": "die Bytes der Tokens ergeben zusammen den Text",
    "chat.token": "Token {n}: {text}", "chat.alternatives": "Was hier hätte stehen können, vor Temperatur und Filtern", "chat.p": "Wahrscheinlichkeit", "chat.rank": "Rang", "chat.rank.beyond": "{n} oder mehr", "chat.entropy": "Entropie, mindestens", "chat.continue": "Von diesem aus fortsetzen", "chat.fixed": "Die Antwort eines Encoder-Decoders lässt sich nicht von einem Token aus fortsetzen.",
    "chat.finish.length": "Die meisten Tokens sind erreicht.", "chat.stopped": "Angehalten.", "chat.changed": "Von Hand geschrieben.", "chat.close": "Schließen",
  },
};
