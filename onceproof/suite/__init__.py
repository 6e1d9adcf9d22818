"""Many runs: batches, matrices and soaks, and the pages that list scenarios and their keys."""
