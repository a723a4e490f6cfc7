// The words of what can be turned.
export default {
  en: {
    "knobs": "Turn it", "knobs.scale": "Scale of attention", "knobs.times": "× {factor} = {scale}", "knobs.base": "Base of positions, {name}", "knobs.back": "A double click goes back to the model's own.",
    "knobs.unscaled": "This mixer multiplies no scores by a scale.", "knobs.unturned": "Its positions do not rotate, so there is no base to change.",
    "knobs.head": "Switch head {layer}.{head} off", "knobs.edge": "Mask the cell {query} → {key}",
  },
  de: {
    "knobs": "Daran drehen", "knobs.scale": "Skala der Aufmerksamkeit", "knobs.times": "× {factor} = {scale}", "knobs.base": "Basis der Positionen, {name}", "knobs.back": "Ein Doppelklick führt zu dem des Modells zurück.",
    "knobs.unscaled": "Diese Schicht multipliziert keine Werte mit einer Skala.", "knobs.unturned": "Seine Positionen drehen nicht, also gibt es keine Basis zu ändern.",
    "knobs.head": "Kopf {layer}.{head} ausschalten", "knobs.edge": "Zelle {query} → {key} maskieren",
  },
};
