"""What a model costs before it is built: parameters, operations, memory, layouts; presets."""
