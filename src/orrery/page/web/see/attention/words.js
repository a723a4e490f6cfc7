// The words of the view of attention.
export default {
  en: {
    "view.attention": "Attention", "attention.about": "Each row is a token that looks, each column a token that is looked at. A row sums to one.",
    "attention.align": "Rows are what was written, columns what was read. A row sums to one; in grey, black is 0 and white is 1 (Bahdanau et al. 2015).",
    "attention.of": "Block {layer}, head {head}", "attention.mean": "Block {layer}, mean of the heads", "attention.small": "Every head, a row for each block", "attention.over": "{from} gives {to} {value}",
    "attention.site": "Which attention", "attention.score": "score", "attention.weight": "weight", "attention.value": "weight × length of the value",
    "attention.drawing": "Drawing", "attention.map": "heat map", "attention.lines": "lines", "attention.bars": "bars of one row",
    "attention.measure": "Shown", "attention.as.weight": "weights", "attention.as.value": "weights × |values|, as shares", "attention.as.causal": "weights and effects", "attention.effect": "KL when cut, nats", "attention.difference": "Edited less clean: blue is less, orange is more. Rows sum to zero.",
    "attention.colours": "Colours", "attention.blue": "blue", "attention.grey": "grey", "attention.all": "mean of the heads", "attention.hide": "hide the first token",
    "attention.overview": "The whole head, small", "attention.long": "A long text: above the largest weight of each cell; click one for its weights. Below queries {queries}, keys {keys}.", "attention.hidden": "The first token is hidden. The others are shares of the rest, so that each row sums to one again.",
    "attention.mass": "Lines that hold {mass} of each row", "attention.count": "{count} lines", "attention.capped": "the {count} heaviest lines", "attention.heads": "Heads that are drawn", "attention.beside": "Beside it", "attention.alone": "no other head", "attention.where": "Whom {from} looks at most",
    "attention.row": "Where {from} looks", "attention.share": "share", "attention.bar": "bar",
  },
  de: {
    "view.attention": "Aufmerksamkeit", "attention.about": "Jede Zeile ist ein Token, das blickt, jede Spalte eines, das angesehen wird. Eine Zeile ergibt eins.",
    "attention.align": "Zeilen sind das Geschriebene, Spalten das Gelesene. Eine Zeile ergibt eins; in Grau ist Schwarz 0 und Weiß 1 (Bahdanau et al. 2015).",
    "attention.of": "Block {layer}, Kopf {head}", "attention.mean": "Block {layer}, Mittel der Köpfe", "attention.small": "Alle Köpfe, eine Zeile je Block", "attention.over": "{from} gibt {to} {value}",
    "attention.site": "Welche Aufmerksamkeit", "attention.score": "Wert vor dem Softmax", "attention.weight": "Gewicht", "attention.value": "Gewicht × Länge des Werts",
    "attention.drawing": "Zeichnung", "attention.map": "Farbkarte", "attention.lines": "Linien", "attention.bars": "Balken einer Zeile",
    "attention.measure": "Gezeigt", "attention.as.weight": "Gewichte", "attention.as.value": "Gewichte × |Werte|, als Anteile", "attention.as.causal": "Gewichte und Wirkung", "attention.effect": "KL ohne die Kante, nats", "attention.difference": "Mit Eingriffen minus ohne: Blau ist weniger, Orange ist mehr. Zeilen ergeben null.",
    "attention.colours": "Farben", "attention.blue": "blau", "attention.grey": "grau", "attention.all": "Mittel der Köpfe", "attention.hide": "erstes Token ausblenden",
    "attention.overview": "Der ganze Kopf, klein", "attention.long": "Ein langer Text: oben das größte Gewicht jeder Zelle, ein Klick zeigt alle. Unten Fragende {queries}, Angesehene {keys}.", "attention.hidden": "Das erste Token ist ausgeblendet. Die übrigen sind Anteile des Rests, so dass jede Zeile wieder eins ergibt.",
    "attention.mass": "Linien, die {mass} jeder Zeile halten", "attention.count": "{count} Linien", "attention.capped": "die {count} stärksten Linien", "attention.heads": "Gezeichnete Köpfe", "attention.beside": "Daneben", "attention.alone": "kein anderer Kopf", "attention.where": "Wohin {from} am meisten blickt",
    "attention.row": "Wohin {from} blickt", "attention.share": "Anteil", "attention.bar": "Balken",
  },
};
