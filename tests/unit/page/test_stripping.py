import re
from importlib.resources import files

import pytest

from orrery.page.assets import assets
from orrery.page.stripping import stripped

CASES = [
    ("// gone\nconst a = 1; // gone\n", "const a=1;\n"),
    ("/** gone\n * gone\n */\nexport const a = 1;\n\n\n  b();\n", "export const a=1;\nb();\n"),
    ('const a = "// stays"; const b = \'/* "stays" */\';', 'const a="// stays";const b=\'/* "stays" */\';\n'),
    ("if (a) { return [b, c] } else d = { e: f ? -1 : 2 }", "if(a){return[b,c]}else d={e:f?-1:2}\n"),
    ("a + +b - -c / d . e < !f", "a+ +b- -c/d . e< !f\n"),
    ("a - b++ + c; 1 / d; x != !y", "a-b++ +c;1/d;x!=!y\n"),
    ("for (const [a, b] of c) x ??= a => ` ${ a } `", "for(const[a,b]of c)x??=a=>` ${a} `\n"),
    ('import { a } from "#b"; case "x": typeof a', 'import{a}from"#b";case"x":typeof a\n'),
    ('x("\\"// stays"); // gone', 'x("\\"// stays");\n'),
    ("const a = `\n  // stays\n`;\n  b", "const a=`\n  // stays\n`;\nb\n"),
    ("`${a /* gone */ + `  ${{ b: 1 }.b} // stays`}  // stays`", "`${a+`  ${{b:1}.b} // stays`}  // stays`\n"),
    ('a.replace(/\\/\\*[/`"]/g, b) // gone', 'a.replace(/\\/\\*[/`"]/g,b)\n'),
    ("const half = (a + b) / 2; // gone / gone", "const half=(a+b)/2;\n"),
    ("return /[`'\"]/.test(text)\n  ? 1 : 2;", "return/[`'\"]/.test(text)\n?1:2;\n"),
    ("a[0] / b / c // gone", "a[0]/b/c\n"),
    ("return a /* gone\n */\n  b", "return a\nb\n"),
]


@pytest.mark.parametrize(("source", "expected"), CASES)
def test_only_comments_indentation_and_empty_lines_go(source, expected):
    assert stripped(source) == expected
    assert stripped(expected) == expected


def test_a_text_without_an_end_is_refused():
    with pytest.raises(ValueError, match="no end"):
        stripped("const a = `never closed")


def test_a_module_of_the_page_keeps_every_line_of_code():
    for path, content in assets().items():
        if not path.endswith(".js"):
            continue
        source = (files("orrery.page") / "web" / path).read_text(encoding="utf-8")
        # Blanks go in both: that they stay in texts is shown above.
        lines = [re.sub(r"\s", "", line) for line in source.splitlines()]
        code = [line for line in lines if line and not line.startswith(("//", "/*", "*"))]
        kept = [re.sub(r"\s", "", line) for line in content.decode().splitlines()]
        for one, sent in zip(code, kept, strict=True):
            assert sent == one or (sent and one.startswith(f"{sent}//")), f"{path}: {one}"
