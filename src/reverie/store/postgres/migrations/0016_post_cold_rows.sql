-- Only older releases read the sources of dreams by it.
DROP INDEX IF EXISTS reverie.entry_dreamt;
