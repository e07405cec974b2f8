"""Top-k over sliding windows (Pripuzic et al., 2015): the paper's k-skybands and grid."""
