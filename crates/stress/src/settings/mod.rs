//! The command language: words in, typed settings out.
