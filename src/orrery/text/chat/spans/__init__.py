"""Which part of a rendered conversation is a control token, who wrote the rest, and what of it the assistant wrote.

A template is a program, and the text that it writes does not say where its parts come from. It is run more than once on
the same conversation, each time with something else in place of what the messages say:

- ``control_tokens`` puts random digits in place of each control token that a message spells, so that those in the text
  are the template's own;
- ``placeholders`` renders other characters of the same kinds, which spell no control token: both texts must have the
  same control tokens, else a message would change what the template writes;
- ``marks`` puts random digits around what each message says, and finds it again in the text;
- ``assistant_spans`` finds each reply by them: it begins where the conversation before it ends as a prompt, and ends
  with the last control token behind its words;
- ``sources`` cuts the text by who wrote it, for people to look at;
- ``encoding`` turns the spans into ids: a control token by its id, all other text without any.
"""
