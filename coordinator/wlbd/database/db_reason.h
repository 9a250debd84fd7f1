/*
 * What clients are told of the database: words of wlbd's own. The words of libpq and of the server name hosts, users
 * and files, and a part of a password where a setting is wrong: they are for wlbd's log.
 */
#ifndef COORDINATOR_WLBD_DATABASE_DB_REASON_H
#define COORDINATOR_WLBD_DATABASE_DB_REASON_H

/* Returns why the database is unavailable, by its SQLSTATE; NULL: there is none. */
const char *wlbd_db_reason_of_state(const char *sqlstate);

/* The same of libpq's message about a connection, which was made with PQERRORS_VERBOSE: libpq tells the SQLSTATE only
 * there. */
const char *wlbd_db_reason_of_message(const char *message);

#endif
