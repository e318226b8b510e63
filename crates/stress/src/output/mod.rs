//! What people and scripts read: rows, summary, logs, graphs, exports.
