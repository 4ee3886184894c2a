"""CEL, the event language of Cayuga: from text to a tree, names and schemas, and back to text."""
