#include "coordinator/db/connection.h"

int wlb_db_fail_line(struct wlb_error *error)
{
	for (char *c = error != NULL ? error->message : NULL; c != NULL && *c != '\0'; c++)
		if (*c == '\n')
			*c = c[1] == '\0' ? '\0' : ' ';
	return -1;
}

int wlb_db_fail(const PGresult *result, const char *what, struct wlb_error *error)
{
	const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	wlb_fail(error, "%s: %s", what, primary != NULL ? primary : PQresultErrorMessage(result));
	return wlb_db_fail_line(error);
}

PGconn *wlb_db_connect(const char *conninfo, struct wlb_error *error)
{
	/* Settings in the connection string come last and take precedence. */
	static const char *const keys[] = {"connect_timeout", "fallback_application_name", "dbname", NULL};
	const char *const values[] = {"10", "wlb", conninfo, NULL};
	PGconn *connection = PQconnectdbParams(keys, values, 1);
	PQsetErrorContextVisibility(connection, PQSHOW_CONTEXT_NEVER); /* a line of SQL says more */
	if (PQstatus(connection) == CONNECTION_OK)
		return connection;
	wlb_fail(error, "database: %s", PQerrorMessage(connection));
	wlb_db_fail_line(error);
	PQfinish(connection);
	return NULL;
}

PGresult *wlb_db_call(PGconn *connection, const char *sql, int count, const char *const *values,
                      struct wlb_error *error)
{
	PGresult *result = PQexecParams(connection, sql, count, NULL, values, NULL, NULL, 0);
	if (PQresultStatus(result) == PGRES_TUPLES_OK)
		return result;
	wlb_db_fail(result, "database", error);
	PQclear(result);
	return NULL;
}
