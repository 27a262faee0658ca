"""What results are computed with: summaries of trials, statistics, comparisons, importance."""
