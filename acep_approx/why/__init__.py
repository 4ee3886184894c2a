"""Why a query matched at some place of the stream, or did not; see ``why.answer.explain``."""
