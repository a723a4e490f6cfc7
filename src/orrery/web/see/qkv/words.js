// The words of the view of queries, keys and values.
export default {
  en: {
    "view.qkv": "Query, key, value", "qkv.about": "One head at one token, from what it reads to what it adds. A number is a link to its formula; the number above a cell chooses the channel that is written out.",
    "qkv.query": "The query", "qkv.query.formula": "q = x · W_q", "qkv.query.turned": "q = R(place) (x · W_q): the product, then each pair of channels turned by its place", "qkv.x": "x, after the norm",
    "qkv.keys": "The keys, here that of “{key}”", "qkv.keys.formula": "k_j = x_j · W_k", "qkv.keys.turned": "k_j = R(place_j) (x_j · W_k)",
    "qkv.scores": "Scores", "qkv.scores.formula": "s_j = q · k_j / √d, minus infinity where the mask hides a key", "qkv.scores.bias": "s_j = q · k_j times the scale, plus what the position adds; minus infinity where the mask hides a key",
    "qkv.bias": "bias", "qkv.score": "score", "qkv.masked": "the mask hides this key", "qkv.weight": "weight", "qkv.sum": "The weights sum to {sum}.",
    "qkv.pattern": "Weights", "qkv.mixed": "Values, weighed and added", "qkv.v": "v of “{key}”", "qkv.av": "{weight} · v of “{key}”", "qkv.z": "z, the sum over all keys",
    "qkv.out": "What the head adds", "qkv.out.formula": "Σ_h z_h · W_o,h: each head goes through its part of the output matrix", "qkv.out.head": "this head: z · W_o", "qkv.out.all": "all heads together", "qkv.out.unknown": "What follows is inside the recurrence and is not shown as a product.",
    "qkv.note.latent": "Latent attention: keys and values are made of a latent of a few numbers a token, and all heads share the turned part of the key. Open a number of k to see the latent. The matrices that could be merged into the query are not merged here.",
    "qkv.note.shared": "Several heads share these keys and values (grouped or multi-query attention).", "qkv.note.cross": "The keys and values are those of the source.",
    "qkv.note.recurrent": "This attention stands inside a recurrence: its scores are computed step by step and are not recorded, so only weights, values and their sum are shown.",
    "qkv.unsaved": "This head and token were not saved with the page.",
  },
  de: {
    "view.qkv": "Anfrage, Schlüssel, Wert", "qkv.about": "Ein Kopf an einem Token, von dem, was er liest, bis zu dem, was er beiträgt. Eine Zahl führt zu ihrer Formel; die Nummer über einer Zelle wählt den Kanal, der ausgeschrieben wird.",
    "qkv.query": "Die Anfrage", "qkv.query.formula": "q = x · W_q", "qkv.query.turned": "q = R(Stelle) (x · W_q): das Produkt, dann jedes Kanalpaar um seine Stelle gedreht", "qkv.x": "x, nach der Norm",
    "qkv.keys": "Die Schlüssel, hier der von „{key}“", "qkv.keys.formula": "k_j = x_j · W_k", "qkv.keys.turned": "k_j = R(Stelle_j) (x_j · W_k)",
    "qkv.scores": "Werte vor dem Softmax", "qkv.scores.formula": "s_j = q · k_j / √d, minus unendlich, wo die Maske einen Schlüssel verbirgt", "qkv.scores.bias": "s_j = q · k_j mal dem Faktor, plus dem Beitrag der Position; minus unendlich, wo die Maske verbirgt",
    "qkv.bias": "Beitrag", "qkv.score": "Wert", "qkv.masked": "die Maske verbirgt diesen Schlüssel", "qkv.weight": "Gewicht", "qkv.sum": "Die Gewichte ergeben {sum}.",
    "qkv.pattern": "Gewichte", "qkv.mixed": "Werte, gewichtet und summiert", "qkv.v": "v von „{key}“", "qkv.av": "{weight} · v von „{key}“", "qkv.z": "z, die Summe über alle Schlüssel",
    "qkv.out": "Was der Kopf beiträgt", "qkv.out.formula": "Σ_h z_h · W_o,h: jeder Kopf geht durch seinen Teil der Ausgabematrix", "qkv.out.head": "dieser Kopf: z · W_o", "qkv.out.all": "alle Köpfe zusammen", "qkv.out.unknown": "Was folgt, liegt in der Rekurrenz und wird nicht als Produkt gezeigt.",
    "qkv.note.latent": "Latente Aufmerksamkeit: Schlüssel und Werte entstehen aus wenigen latenten Zahlen je Token, und alle Köpfe teilen den gedrehten Teil des Schlüssels. Eine Zahl von k führt zu den latenten Zahlen. Matrizen, die in die Anfrage gezogen werden könnten, sind hier nicht zusammengefasst.",
    "qkv.note.shared": "Mehrere Köpfe teilen diese Schlüssel und Werte (gruppierte oder Multi-Query-Aufmerksamkeit).", "qkv.note.cross": "Schlüssel und Werte sind die der Quelle.",
    "qkv.note.recurrent": "Diese Aufmerksamkeit steht in einer Rekurrenz: Ihre Werte vor dem Softmax entstehen Schritt für Schritt und werden nicht aufgezeichnet. Gezeigt werden Gewichte, Werte und deren Summe.",
    "qkv.unsaved": "Dieser Kopf und dieses Token wurden nicht mit der Seite gespeichert.",
  },
};
