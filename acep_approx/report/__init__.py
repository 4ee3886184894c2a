"""What a run under a budget did: one page of HTML, and a few lines for the terminal."""
