// The words of the view of positions.
export default {
  en: {
    "view.position": "Position", "position.scheme": "Which positions", "position.place": "Place", "position.kind.sinusoidal": "Sinusoids: a pair of channels is sine and cosine of the place times a rate (Vaswani et al. 2017). They are added to the embedding.",
    "position.kind.learned": "A table of vectors, one a place, added to the embedding.", "position.kind.onehot": "The unit vector of the place stands beside the embedding.", "position.kind.rotary": "Each pair of channels of a query and a key turns by its place times a rate, so that their product sees the distance only (Su et al. 2021).",
    "position.kind.bias": "A number that each head adds to a score, by how far the key is from the query.", "position.kind.distances": "A vector for every distance between a query and a key.",
    "position.table": "Places down, channels across", "position.distances": "Distances down, channels across", "position.clocks": "Clocks: pair, and places for one turn", "position.clock": "pair {pair}, a turn in {turn} places",
    "position.products": "PE(p) · PE(p + k), for p = {place}", "position.products.all": "Products of all pairs of places", "position.across.k": "place p + k", "position.shift": "A shift by k turns every clock by k times its rate: PE(p + k) = R(k) PE(p). The product sees only k.",
    "position.score": "q · k / √d of {query} and {key}, if they stood so far apart", "position.across.distance": "places from the key to the query", "position.bias": "What each head adds to a score", "position.across.offset": "place of the key minus that of the query", "position.head": "head {head}", "position.bykey": "Here the bias follows the place of the key, rounded, and not the distance alone.",
    "position.hands": "The hands stand at {query} (looking) and {key} (looked at).",
  },
  de: {
    "view.position": "Position", "position.scheme": "Welche Positionen", "position.place": "Stelle", "position.kind.sinusoidal": "Sinuskurven: Ein Kanalpaar ist Sinus und Kosinus der Stelle mal einer Rate (Vaswani et al. 2017). Sie werden zur Einbettung addiert.",
    "position.kind.learned": "Eine Tabelle von Vektoren, einer je Stelle, zur Einbettung addiert.", "position.kind.onehot": "Der Einheitsvektor der Stelle steht neben der Einbettung.", "position.kind.rotary": "Jedes Kanalpaar von Anfrage und Schlüssel wird um Stelle mal Rate gedreht, so dass ihr Produkt nur den Abstand sieht (Su et al. 2021).",
    "position.kind.bias": "Eine Zahl, die jeder Kopf nach dem Abstand des Schlüssels zum Wert vor dem Softmax addiert.", "position.kind.distances": "Ein Vektor für jeden Abstand zwischen Anfrage und Schlüssel.",
    "position.table": "Stellen abwärts, Kanäle quer", "position.distances": "Abstände abwärts, Kanäle quer", "position.clocks": "Uhren: Paar, und Stellen für eine Umdrehung", "position.clock": "Paar {pair}, eine Umdrehung in {turn} Stellen",
    "position.products": "PE(p) · PE(p + k), für p = {place}", "position.products.all": "Produkte aller Paare von Stellen", "position.across.k": "Stelle p + k", "position.shift": "Eine Verschiebung um k dreht jede Uhr um k mal ihre Rate: PE(p + k) = R(k) PE(p). Das Produkt sieht nur k.",
    "position.score": "q · k / √d von {query} und {key}, stünden sie so weit auseinander", "position.across.distance": "Stellen vom Schlüssel zur Anfrage", "position.bias": "Was jeder Kopf addiert", "position.across.offset": "Stelle des Schlüssels minus die der Anfrage", "position.head": "Kopf {head}", "position.bykey": "Hier folgt der Beitrag der gerundeten Stelle des Schlüssels und nicht allein dem Abstand.",
    "position.hands": "Die Zeiger stehen bei {query} (blickt) und {key} (angesehen).",
  },
};
