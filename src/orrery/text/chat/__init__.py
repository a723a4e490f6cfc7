"""Chats to ids, for training, chat and server alike: control tokens come only from the template."""
