"""Top-k over sliding windows (Pripuzic et al., 2015): the paper's k-skybands and grid.

They differ from the paper where it is wrong:

- Its limit is the first rank with a bound below sigma/2. For large k the loss then exceeds sigma
  (at k = 500), so the tail is summed by Definition 4.5.
- Algorithms 1 and 3 compare with the tail of a tree that may be empty, 2 misses the tail itself.
  ``Trees`` lets in what is better than the last of the best; at size > k the last moves.
- Buffers of at most (n+1)/2 are enforced: with one more event answers are wrong.
"""
