"""Bad input for every verb and key, made by rule from signatures and recipe models."""
