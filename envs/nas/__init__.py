"""Networks and chips searched together: families, tasks, accuracies, chips, schedules."""
