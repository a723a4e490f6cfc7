"""Any words for any key of a recipe and any flag of a verb: a value, or an error that names the key."""

import contextlib

import yaml
from cyclopts import CycloptsError
from hypothesis import example, given
from hypothesis import strategies as st

from battery import recipe_keys, values, verbs, world
from orrery.cli import program
from orrery.cli.console import judge
from orrery.errors import OrreryError, UsageError
from orrery.recipes.config import Recipe
from orrery.recipes.read import as_yaml, load_as, plain
from orrery.recipes.word_vectors import WordVectorRecipe
from orrery.schema.section import Section

SCHEMAS: dict[str, tuple[type[Section], dict]] = {
    "recipe": (Recipe, world.RECIPE),
    "pairs": (Recipe, world.PAIRS),
    "words": (WordVectorRecipe, world.VECTORS),
}
KEYS = [(name, key, beside) for name, (schema, _) in SCHEMAS.items() for key, _, beside in recipe_keys.keys(schema)]
LISTED = {*recipe_keys.INTEGERS, *recipe_keys.WORDS, *recipe_keys.PATHS, *recipe_keys.OTHERS, *recipe_keys.CHOICES}
NUMBERS = st.integers().map(str) | st.floats().map(str) | st.integers(0, 6000).map("9".__mul__)
NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    max_leaves=6,
).map(lambda value: yaml.safe_dump(value, default_flow_style=True))
ANYTHING = st.sampled_from(sorted(LISTED)) | NUMBERS | NESTED | st.text(max_size=20)


@given(st.sampled_from(KEYS), ANYTHING)
@example(("recipe", "training.optimizer.betas", {}), "[0.9]")
@example(("recipe", "training.steps", {}), "true")
@example(("recipe", "seed", {}), "9223372036854775808")
def test_any_value_of_any_key(tmp_path_factory, place: tuple[str, str, dict[str, str]], text: str) -> None:
    name, key, beside = place
    schema, base = SCHEMAS[name]
    path = tmp_path_factory.mktemp("recipe") / "recipe.yaml"
    path.write_text(yaml.safe_dump(base))
    words = [f"--{other}={value}" for other, value in beside.items() if not key.endswith("kind")]
    with contextlib.suppress(UsageError):
        recipe = load_as(schema, path, [*words, f"--{key}={text}"])
        path.write_text(as_yaml(recipe))
        assert plain(load_as(schema, path)) == plain(recipe)  # what was accepted can be written and read again


@given(st.binary(max_size=60) | st.text("[]{}:,&*!|>-? a1.\n'\"\t", max_size=60).map(str.encode))
def test_any_bytes_as_a_recipe(tmp_path_factory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("recipe") / "recipe.yaml"
    path.write_bytes(content)
    for schema in (Recipe, WordVectorRecipe):
        with contextlib.suppress(UsageError):
            load_as(schema, path)


FLAGS = [(verb, flag) for verb, function in verbs.verbs() for flag, named, _ in verbs.flags(function) if named]
TYPED = [place for place in FLAGS if not place[0].startswith("evaluate")]
LISTED_WORDS = sorted({*values.INTEGERS, *values.FLOATS, *values.WORDS, *values.UNWRITABLE})
WORDS = st.sampled_from(LISTED_WORDS) | st.text() | NUMBERS


@given(st.sampled_from(TYPED), WORDS)
def test_any_word_of_any_flag(place: tuple[str, str], word: str) -> None:
    verb, flag = place
    words = verbs.with_flag(verbs.line(verb), flag, word)
    refused: Exception | None = None
    try:
        program.build(words).parse_args(words, print_error=False, exit_on_error=False)
    except (CycloptsError, OrreryError) as error:
        refused = error
    assert refused is None or (judge(refused).code == 2 and judge(refused).hint)


def test_no_verb_takes_a_bare_number() -> None:
    """A number without a range is rounded, or is none, or is beyond all sense."""
    bare = []
    for verb, function in verbs.verbs():
        for flag, _, kind in verbs.flags(function):
            if kind & {int, float} and not verbs.bounded(function, flag):
                bare.append(f"{verb} --{flag}")
    assert bare == []
