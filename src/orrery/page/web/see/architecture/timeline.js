// How attention came about: a paper a line, with the family of this program that is built after it.
import { h } from "#see/dom.js";
import { t } from "#see/words.js";

const PAPERS = [
  [1990, "Elman", "elman_rnn", "ElmanRNN"], [1997, "Hochreiter, Schmidhuber", "lstm", "LSTM"], [2003, "Bengio et al.", "nplm", "TimeDelay"], [2014, "Cho et al.", "rnnenc", "FinalStateGRU"], [2014, "Sutskever et al.", "sutskever", "LSTMDecoder"],
  [2015, "Bahdanau et al.", "rnnsearch", "Additive"], [2015, "Luong et al.", "luong", "General"], [2017, "Vaswani et al.", "transformer", "MultiHeadAttention"], [2018, "Radford et al.", "openai_gpt", null], [2018, "Devlin et al.", "bert", null], [2019, "Radford et al.", "gpt2", null], [2020, "Raffel et al.", "t5", "RelativeBias"],
  [2021, "Dosovitskiy et al.", "vit", "PatchEmbedding"], [2022, "BigScience", "bloom", "Alibi"], [2023, "Touvron et al.", "llama", "Rotary"], [2023, "Jiang et al.", "mistral", "Window"], [2024, "Jiang et al.", "mixtral", "MoE"], [2024, "DeepSeek-AI", "deepseek_v2", "LatentAttention"],
];

export function timeline({ family, kinds }) {
  const row = ([year, authors, name, kind]) => {
    const own = name === family;
    return h("li", { class: own ? "own" : kind && kinds.includes(kind) ? "part-of" : null, "data-family": name }, h("span.year", {}, year), h("strong", {}, authors), ` ${t(`timeline.${name}`)} `, h("code", {}, name), own ? h("span.soft", {}, ` · ${t("architecture.this")}`) : kind && kinds.includes(kind) && h("span.soft", {}, ` · ${kind}`));
  };
  return h("ol.timeline", {}, PAPERS.map(row));
}
