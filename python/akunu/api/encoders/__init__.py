"""Models that make vectors of texts: embeddings, and scores of documents for a query."""
