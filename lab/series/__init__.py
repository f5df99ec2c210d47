"""Series: cells times repetitions in an order fixed by a seed. Arms, matrices and searches are all run by it."""
