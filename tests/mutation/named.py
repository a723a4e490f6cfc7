"""Mutations that once survived every test: each is tried by name, beside those that are drawn."""

from pathlib import Path

from mutation.operators import Mutation

# File, what stands there, what stands there instead; the old text occurs once in the file.
ONCE_SURVIVED = (
    ("nn/positions/rotary.py", "(self.high_frequency - self.low_frequency)).clamp(0, 1)",
     "(self.high_frequency - self.low_frequency)).clamp(-99, 99)"),
    ("training/loop.py", "seed=(self.recipe.seed, step),", "seed=(self.recipe.seed, 0),"),
    ("generation/beams.py", "return min(self.limits.max_new_tokens, self.remaining + 1)",
     "return min(self.limits.max_new_tokens, self.remaining + 1) // 2"),
    ("metrics/_of_the_loss.py", "(term.weight * float(term.sum), term.count)",
     "(term.weight * float(term.sum) / max(1.0, float(term.count)), 1.0)"),
    ("training/parallel/placement.py", "clip_grad_norm_(parameters, limit)",
     "clip_grad_norm_(parameters, limit, norm_type=1.0)"),
    ("training/parallel/placement.py", "clip_grad_norm_(parameters, limit)",
     "clip_grad_norm_(parameters, limit, norm_type=float('inf'))"),
    ("checkpoints/gguf.py", "steps=127", "steps=126"),
    ("scores/translation.py", "metric = getattr(metrics, kind)(**settings)",
     "metric = getattr(metrics, kind)(**{**settings, 'lowercase': True})"),
)  # fmt: skip


def named(source: Path) -> list[Mutation]:
    """Return the mutations of the table, placed in the files as they are now."""
    changes = []
    for file, old, new in ONCE_SURVIVED:
        text = (source / file).read_text(encoding="utf-8")
        before, _, after = text.partition(old)
        if not after or old in after:
            raise ValueError(f"{old!r} does not stand once in {file}: adapt the table to the new code")
        line, column = before.count("\n") + 1, len(before.rpartition("\n")[2].encode())
        ending = (before + old).rpartition("\n")[2]
        end_line = line + old.count("\n")
        shown = " ".join(old.split())
        changes.append(Mutation(file, "", "named", line, column, end_line, len(ending.encode()), shown, new))
    return changes
