"""What a runtime says of itself: metadata V9 to V16 read into one model, storage keys named, two runtimes compared."""
