// The words of the view of a live cache.
const shapes = { "cached.name.k": "k", "cached.name.v": "v" };

export default {
  en: {
    ...shapes, "view.cached": "Cache: its numbers",
    "cached.about": "A cache that was filled with this text, the last tokens one by one, as when the model writes. Each row is compared with that of a pass without a cache.",
    "cached.read": "Read so far", "cached.of": "{tokens} of {length} tokens", "cached.play": "Play", "cached.stop": "Stop",
    "cached.stepped": "Tokens read at once: {prompt}; one by one: {stepped}.", "cached.own": "Each of the {heads} heads has keys and values of its own.", "cached.gqa": "{heads} heads share {held} key-value heads (GQA); this one serves the heads {served}.", "cached.mqa": "All {heads} heads share one key-value head (MQA).",
    "cached.kind.latent": "All heads share one latent and one rotated key (MLA); their keys and values are made of it at every step.", "cached.kind.source": "Cross-attention: keys and values of the source, made once and read at every step.", "cached.kind.state": "A state: one size, however long the text is. It has no places.",
    "cached.window": "A window keeps the last {window} tokens, so {gone} are gone; a new token takes the slot of an old one.", "cached.edited": "Edits of tensors act in the pass alone, not in this cache.",
    "cached.slot": "held in slot {slot}", "cached.gone": "not held any more", "cached.held": "Head that is held", "cached.part": "Part of the state", "cached.place": "{path}, held head {head}, place {place}: {text}", "cached.map": "{name}: {rows} × {columns}", "cached.unsaved": "This file was saved without these numbers.",
    "cached.keys": "keys and values", "cached.latent": "latent", "cached.source": "of the source", "cached.state": "state", "cached.shared": "{heads} share {held}", "cached.sum": "Held: {held}. Allocated, with spare slots: {allocated}.",
    "cached.head.layer": "Layer", "cached.head.what": "Holds", "cached.head.store": "Kept by", "cached.head.places": "Places", "cached.head.heads": "Heads", "cached.head.shape": "Shapes", "cached.head.bytes": "Bytes",
    "cached.name.latent": "latent", "cached.name.rotated": "rotated key",
  },
  de: {
    ...shapes, "view.cached": "Speicher: seine Zahlen",
    "cached.about": "Ein Speicher, der mit diesem Text gefüllt wurde, die letzten Tokens einzeln, wie beim Schreiben. Jede Zeile ist mit der eines Laufs ohne Speicher verglichen.",
    "cached.read": "Bisher gelesen", "cached.of": "{tokens} von {length} Tokens", "cached.play": "Abspielen", "cached.stop": "Anhalten",
    "cached.stepped": "Auf einmal gelesene Tokens: {prompt}; einzeln: {stepped}.", "cached.own": "Jeder der {heads} Köpfe hat eigene Schlüssel und Werte.", "cached.gqa": "{heads} Köpfe teilen sich {held} Schlüssel-Wert-Köpfe (GQA); dieser dient den Köpfen {served}.", "cached.mqa": "Alle {heads} Köpfe teilen sich einen Schlüssel-Wert-Kopf (MQA).",
    "cached.kind.latent": "Alle Köpfe teilen sich ein Latent und einen gedrehten Schlüssel (MLA); ihre Schlüssel und Werte werden in jedem Schritt daraus gemacht.", "cached.kind.source": "Cross-Attention: Schlüssel und Werte der Quelle, einmal gemacht und in jedem Schritt gelesen.", "cached.kind.state": "Ein Zustand: immer gleich groß, wie lang der Text auch ist. Er hat keine Stellen.",
    "cached.window": "Ein Fenster behält die letzten {window} Tokens, {gone} sind also fort; ein neues Token nimmt den Platz eines alten.", "cached.edited": "Eingriffe in Tensoren wirken nur im Lauf, nicht in diesem Speicher.",
    "cached.slot": "gehalten auf Platz {slot}", "cached.gone": "nicht mehr gehalten", "cached.held": "Gehaltener Kopf", "cached.part": "Teil des Zustands", "cached.place": "{path}, gehaltener Kopf {head}, Stelle {place}: {text}", "cached.map": "{name}: {rows} × {columns}", "cached.unsaved": "Diese Datei wurde ohne diese Zahlen gespeichert.",
    "cached.keys": "Schlüssel und Werte", "cached.latent": "Latent", "cached.source": "von der Quelle", "cached.state": "Zustand", "cached.shared": "{heads} teilen {held}", "cached.sum": "Gehalten: {held}. Belegt, mit freien Plätzen: {allocated}.",
    "cached.head.layer": "Schicht", "cached.head.what": "Hält", "cached.head.store": "Speicherart", "cached.head.places": "Stellen", "cached.head.heads": "Köpfe", "cached.head.shape": "Formen", "cached.head.bytes": "Bytes",
    "cached.name.latent": "Latent", "cached.name.rotated": "gedrehter Schlüssel",
  },
};
