-- No process of a release without keys for subjects runs any more; the program gives the entries they wrote their keys.
DROP TRIGGER about_from_before ON reverie.entry;
DROP FUNCTION reverie.about_from_before();
