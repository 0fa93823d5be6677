"""The operations of the Field, one module each; `table` lists them."""
