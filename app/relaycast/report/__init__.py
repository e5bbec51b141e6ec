"""Reports as HTML pages: charts, trie views and sentences."""
