//! Which partition is next: the seeds of partitions, in order or drawn.
