"""Why a query found nothing in a whole stream: the step of its pattern that no event passed."""
