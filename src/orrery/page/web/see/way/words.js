// The words of the view of a token's way.
export default {
  en: {
    "view.way": "Way", "way.about": "The way of one token, from its row of the table down to what the model answers. The stream runs on the left; each part adds its vector to it from the side. Come closer to read the numbers; every colour is one of them.",
    "way.play": "Follow the token", "way.unsaved": "The way of this token was not saved with the page.", "way.stop": "Stop", "way.closer": "Closer", "way.farther": "Farther", "way.whole": "Whole way", "way.step": "Station", "way.token": "Token",
    "way.looked_up": "row of the table", "way.stream": "stream", "way.final": "after the last norm", "way.adds": "{part} of block {block} adds", "way.after": "stream after {part} of block {block}", "way.begins": "stream before the first block", "way.length": "length {length} · {size} numbers", "way.head": "head {head}: {looks}",
    "way.attention": "attention", "way.cross": "attention to the source", "way.feed_forward": "feed-forward layer", "way.mixer": "mixer", "way.recurrence": "recurrence", "way.parallel": "attention and feed-forward layer", "way.words": "network", "way.answer": "the answer", "way.table": "The stations as a table",
    "way.drawing": "The way of “{token}” through {count} stations; arrows move, plus and minus come closer",
  },
  de: {
    "view.way": "Weg", "way.about": "Der Weg eines Tokens, von seiner Zeile der Tabelle hinab bis zu dem, was das Modell antwortet. Links läuft der Strom; jeder Teil fügt von der Seite seinen Vektor hinzu. Näher herangehen, um die Zahlen zu lesen; jede Farbe ist eine davon.",
    "way.play": "Dem Token folgen", "way.unsaved": "Der Weg dieses Tokens wurde nicht mit der Seite gespeichert.", "way.stop": "Anhalten", "way.closer": "Näher", "way.farther": "Weiter weg", "way.whole": "Ganzer Weg", "way.step": "Station", "way.token": "Token",
    "way.looked_up": "Zeile der Tabelle", "way.stream": "Strom", "way.final": "nach der letzten Norm", "way.adds": "{part} von Block {block} fügt hinzu", "way.after": "Strom nach {part} von Block {block}", "way.begins": "Strom vor dem ersten Block", "way.length": "Länge {length} · {size} Zahlen", "way.head": "Kopf {head}: {looks}",
    "way.attention": "Aufmerksamkeit", "way.cross": "Aufmerksamkeit auf die Quelle", "way.feed_forward": "Feed-forward-Schicht", "way.mixer": "Mixer", "way.recurrence": "Rekurrenz", "way.parallel": "Aufmerksamkeit und Feed-forward-Schicht", "way.words": "Netz", "way.answer": "die Antwort", "way.table": "Die Stationen als Tabelle",
    "way.drawing": "Der Weg von „{token}“ durch {count} Stationen; Pfeile bewegen, Plus und Minus gehen näher heran",
  },
};
