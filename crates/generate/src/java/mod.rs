//! The randomness that cassandra-stress stands on: Java's and commons-math's, to the bit.
