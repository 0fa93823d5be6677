-- Runs once, when the postgres image initialises an empty volume. POSTGRES_USER of that image is a superuser, whom row
-- security does not bind; Reverie connects as this plain role, which owns its database.
\getenv password POSTGRES_PASSWORD
CREATE ROLE reverie LOGIN PASSWORD :'password';
CREATE DATABASE reverie OWNER reverie;
