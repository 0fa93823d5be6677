-- The word index and the vectors of older releases: 0003 put both into one row.
DROP TRIGGER out_of_before ON reverie.recall;
DROP TABLE reverie.posting, reverie.words, reverie.vector;
DROP FUNCTION reverie.out_of_before(), reverie.recall_from_before(), reverie.words_before(integer, bigint);
ALTER TABLE reverie.tenant DROP COLUMN indexed, DROP COLUMN tokens;
