"""The search index: postings, vectors, and the cache that holds them."""
