// German.
export default {
  "skip": "Zum Inhalt",
  "glossary": "Glossar", "glossary.open": "Was heißt dieses Wort?", "glossary.all": "Alle Wörter", "working": "Rechnet …", "menu": "Modell, Sprache und Werkzeuge", "screen.chat": "Gespräch", "screen.inside": "Innenansicht", "screen.decode": "Dekodieren", "screen.model": "Modell", "screen.train": "Training", "screen.trust": "Prüfungen",
  "text": "Text", "image": "Bild", "source": "Quelle", "target": "Was geschrieben wurde", "look": "Hineinsehen", "looking": "Wird berechnet …", "look.memory": "Das braucht bis zu {said} neben den Gewichten.",
  "link": "Link kopieren", "link.done": "Der Link ist kopiert.", "link.none": "Der Browser lässt diese Seite nicht kopieren: Die Adresse oben ist der Link.", "gone": "Der Server antwortet nicht. Läuft er noch?", "look.first": "Was das Modell zu einem Text berechnet, steht hier, sobald es einen gelesen hat.", "theme": "Hell oder dunkel", "language": "Sprache", "help": "Tasten", "save": "Als Datei speichern", "save.none": "Zuerst in einen Text hineinsehen.",
  "checks": "{passed} von {all} Prüfungen bestanden", "check.bound": "{value}, höchstens {bound}", "failed": "Diese Ansicht ist gescheitert: {why}",
  "layer": "Block", "head": "Kopf", "query": "Blickendes Token", "key": "Angesehenes Token", "head.all": "Alle Köpfe",
  "export.png": "PNG", "export.svg": "SVG", "export.csv": "CSV", "export.safetensors": "safetensors", "table": "Als Tabelle", "picture": "Als Bild",
  "offline": "Gespeicherte Seite: Sie zeigt, was mit ihr gespeichert wurde.", "key.needed": "Dieser Server verlangt seinen Schlüssel.", "key.label": "Schlüssel", "key.use": "Schlüssel verwenden",
  "keys.title": "Tasten", "keys.close": "Schließen",
  "keys.token": "voriges oder nächstes Token", "keys.layer": "Block darüber oder darunter", "keys.head": "voriger oder nächster Kopf", "keys.stop": "nächste Ansicht", "keys.search": "Token suchen", "keys.unlock": "loslassen", "keys.help": "diese Liste", "keys.diff": "Unterschied zum Lauf ohne Änderungen", "keys.go": "zu einem Kopf, etwa 5.3",
  "search": "Token suchen", "go": "Block.Kopf", "tokens": "Tokens", "model.facts": "{family}, {parameters} Parameter, {dtype} auf {device}",
  "vector.all": "alle {count}", "vector.few": "weniger", "vector.cells": "Zahlen",
  "explain.rest": "{count} weitere", "explain.title": "Woher eine Zahl kommt", "explain.others": "und {count} weitere, zusammen {value}", "explain.check": "{value} nach der Formel, {recorded} aufgezeichnet; Abstand {off}", "explain.of": "woher {name} kommt",
  "explain.head": "Kopf", "explain.token": "Token", "explain.channel": "Kanal", "explain.class": "Klasse", "explain.vocabulary": "Vokabular", "explain.place": "Stelle",
};
