// Tooltips for the pictures of a report.
