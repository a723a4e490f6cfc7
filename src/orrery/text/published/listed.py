"""Pieces of a SentencePiece model with the numbers of a list: Marian's and M2M-100's vocab.json, fairseq's for NLLB.

A piece that the list lacks is unknown; a run of characters that no piece spells has a number where the list has it.
Marian's list holds the pieces of both of its models; the source's cuts texts.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orrery.errors import ModelFileError
from orrery.text.frames import of_slots
from orrery.text.sentencepiece import export
from orrery.text.sentencepiece.file import read

UNKNOWN, END, PAD = "<unk>", "</s>", "<pad>"
_FAIRSEQ = ("<s>", PAD, END, UNKNOWN)
LANGUAGES = {
    "m2m100": "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr "
    "ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps "
    "pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu",
    "wmt21": "en ha is ja cs ru zh de",
}
"""The languages of M2M-100 by ``language_codes``, whose tokens stand behind the list in this order."""
NLLB = """
ace_Arab ace_Latn acm_Arab acq_Arab aeb_Arab afr_Latn ajp_Arab aka_Latn amh_Ethi apc_Arab arb_Arab ars_Arab ary_Arab
arz_Arab asm_Beng ast_Latn awa_Deva ayr_Latn azb_Arab azj_Latn bak_Cyrl bam_Latn ban_Latn bel_Cyrl bem_Latn ben_Beng
bho_Deva bjn_Arab bjn_Latn bod_Tibt bos_Latn bug_Latn bul_Cyrl cat_Latn ceb_Latn ces_Latn cjk_Latn ckb_Arab crh_Latn
cym_Latn dan_Latn deu_Latn dik_Latn dyu_Latn dzo_Tibt ell_Grek eng_Latn epo_Latn est_Latn eus_Latn ewe_Latn fao_Latn
pes_Arab fij_Latn fin_Latn fon_Latn fra_Latn fur_Latn fuv_Latn gla_Latn gle_Latn glg_Latn grn_Latn guj_Gujr hat_Latn
hau_Latn heb_Hebr hin_Deva hne_Deva hrv_Latn hun_Latn hye_Armn ibo_Latn ilo_Latn ind_Latn isl_Latn ita_Latn jav_Latn
jpn_Jpan kab_Latn kac_Latn kam_Latn kan_Knda kas_Arab kas_Deva kat_Geor knc_Arab knc_Latn kaz_Cyrl kbp_Latn kea_Latn
khm_Khmr kik_Latn kin_Latn kir_Cyrl kmb_Latn kon_Latn kor_Hang kmr_Latn lao_Laoo lvs_Latn lij_Latn lim_Latn lin_Latn
lit_Latn lmo_Latn ltg_Latn ltz_Latn lua_Latn lug_Latn luo_Latn lus_Latn mag_Deva mai_Deva mal_Mlym mar_Deva min_Latn
mkd_Cyrl plt_Latn mlt_Latn mni_Beng khk_Cyrl mos_Latn mri_Latn zsm_Latn mya_Mymr nld_Latn nno_Latn nob_Latn npi_Deva
nso_Latn nus_Latn nya_Latn oci_Latn gaz_Latn ory_Orya pag_Latn pan_Guru pap_Latn pol_Latn por_Latn prs_Arab pbt_Arab
quy_Latn ron_Latn run_Latn rus_Cyrl sag_Latn san_Deva sat_Beng scn_Latn shn_Mymr sin_Sinh slk_Latn slv_Latn smo_Latn
sna_Latn snd_Arab som_Latn sot_Latn spa_Latn als_Latn srd_Latn srp_Cyrl ssw_Latn sun_Latn swe_Latn swh_Latn szl_Latn
tam_Taml tat_Cyrl tel_Telu tgk_Cyrl tgl_Latn tha_Thai tir_Ethi taq_Latn taq_Tfng tpi_Latn tsn_Latn tso_Latn tuk_Latn
tum_Latn tur_Latn twi_Latn tzm_Tfng uig_Arab ukr_Cyrl umb_Latn urd_Arab uzn_Latn vec_Latn vie_Latn war_Latn wol_Latn
xho_Latn ydd_Hebr yor_Latn yue_Hant zho_Hans zho_Hant zul_Latn
"""
"""The languages of NLLB-200, whose tokens stand behind the pieces in this order (Costa-jussà et al. 2022)."""
_HINT = "take the folder's vocabulary from its origin again"


def marian(content: bytes, numbers: Mapping[str, int], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokenizer.json of Marian: ``A </s>``; a text may open with the language it is put into, ``>>fra<<``.

    Args:
        content: the SentencePiece model of the source.
        numbers: the list.
        config: what tokenizer_config.json says.

    Raises:
        ModelFileError: the two sides have lists of their own, or the list lacks a number.
    """
    if config.get("separate_vocabs"):
        raise ModelFileError(
            "separate_vocabs: source and target have lists of their own, and there is one tokenizer",
            "lm.logits takes the ids that transformers gives",
        )
    return _made(content, numbers, [END, UNKNOWN, PAD], [], ["A", END], opening=True)


def m2m_100(content: bytes, numbers: Mapping[str, int], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokenizer.json of M2M-100: ``__en__ A </s>``, the language being that of ``src_lang``.

    Raises:
        ModelFileError: an unknown set of languages or language, or the list lacks a number.
    """
    codes = LANGUAGES.get(said := config.get("language_codes") or "m2m100", "").split()
    source = _source(config, "en", codes, str(said))
    behind = [f"__{code}__" for code in codes]
    return _made(content, numbers, _FAIRSEQ, behind, [f"__{source}__", "A", END], opening=False)


def nllb(content: bytes, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokenizer.json of NLLB: ``eng_Latn A </s>``, or ``A </s> eng_Latn`` by ``legacy_behaviour``.

    fairseq put four tokens of its own in front of the pieces; the languages and a mask stand behind them.

    Raises:
        ModelFileError: an unknown language.
    """
    source = _source(config, "eng_Latn", codes := NLLB.split(), "NLLB-200")
    pieces = [piece.text for piece in read(content).pieces[3:]]
    numbers = {piece: id for id, piece in enumerate([*_FAIRSEQ, *pieces])}
    single = ["A", END, source] if config.get("legacy_behaviour") is True else [source, "A", END]
    return _made(content, numbers, _FAIRSEQ, [*codes, "<mask>"], single, opening=False)


def _source(config: Mapping[str, Any], usual: str, codes: Sequence[str], family: str) -> str:
    """Return the language of the sources."""
    source = config.get("src_lang") or usual
    if source not in codes:
        known = f"known: {' '.join(codes)}" if codes else f"known sets: {', '.join(LANGUAGES)}"
        raise ModelFileError(f"src_lang = {source!r} is no language of {family[:40]!r}", known)
    return str(source)


def _made(
    content: bytes,
    numbers: Mapping[str, int],
    control: Sequence[str],
    behind: Sequence[str],
    single: Sequence[str],
    *,
    opening: bool,
) -> dict[str, Any]:
    pieces = sorted(numbers, key=numbers.__getitem__)
    ids = {piece: id for id, piece in enumerate([*pieces, *behind])}
    if any(numbers[piece] != ids[piece] for piece in pieces) or not {UNKNOWN, END} <= numbers.keys():
        raise ModelFileError("vocab.json lacks a number, <unk> or </s>", _HINT)
    made, model = json.loads(export.definition(content)), read(content)
    scores = {piece.text: piece.score for piece in model.pieces}
    least = min(scores.values(), default=0.0)
    vocabulary = [[piece, scores.get(piece, least)] for piece in ids]
    # Another program that reads the file comes close: it takes the pieces of the target for the source's too.
    made["model"] = {
        "type": "Unigram",
        "unk_id": ids[UNKNOWN],
        "vocab": vocabulary,
        "byte_fallback": False,
        export.KEY: made["model"][export.KEY],
        export.NUMBERED: {"opening": opening},
    }
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    special = sorted({ids[token] for token in (*control, *behind) if token in ids})
    names = [*ids]
    made["added_tokens"] = [{"id": id, "content": names[id], **flags, "special": True} for id in special]
    place = single.index("A") + 1
    made["post_processor"] = of_slots(single, [*single[:place], "B", *single[place:]], ids.get)
    return made
