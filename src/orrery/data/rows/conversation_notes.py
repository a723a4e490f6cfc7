"""What is said of conversations before they are learnt: ends, roles and repetitions."""

import json
from collections import Counter
from collections.abc import Sequence

from orrery.data.rows.conversations import Conversation
from orrery.text.chat.spans.encoding import Rendered


def said_of(conversations: Sequence[Conversation], rendered: Sequence[Rendered], ended: int, what: str) -> list[str]:
    """Say how much is learnt of how much is read, whose messages there are, and how many end with the end token.

    Args:
        conversations: as they were read.
        rendered: those that are learnt.
        ended: how many of these have the end token behind their last reply.
        what: training or held-back.
    """
    if not rendered:
        return []
    roles = Counter(str(message["role"]) for each in conversations for message in each.messages)
    spoken = ", ".join(f"{role} {count:,}" for role, count in roles.most_common())
    read, learnt = sum(len(each.ids) for each in rendered), sum(sum(each.reply) for each in rendered)
    return [
        f"{what}: {len(conversations):,} conversations, messages: {spoken}",
        f"{what}: {learnt:,} of {read:,} tokens are learnt ({learnt / max(1, read):.1%}); "
        f"EOS share {ended / len(rendered):.1%}: {ended:,} of {len(rendered):,} last replies end with the end token",
    ]


def told_of_repeated(conversations: Sequence[Conversation]) -> list[str]:
    """Say how many training conversations stand word for word before; nothing where none does."""
    twice = len(conversations) - len({json.dumps(each.messages, sort_keys=True) for each in conversations})
    return [f"{twice:,} of {len(conversations):,} training conversations repeat another word for word"] if twice else []
