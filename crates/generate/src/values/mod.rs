//! Values of columns from seeds.
