#include "coordinator/db/reader.h"

#include "coordinator/db/connection.h"

int wlb_db_reader(const char *conninfo, const char *name, FILE *out, struct wlb_error *error)
{
	PGconn *connection = wlb_db_connect(conninfo, error);
	if (connection == NULL)
		return -1;
	PGresult *result = wlb_db_call(connection, "select quote_ident($1), wlb_reader_make($1)", 1, &name, error);
	int rc = result != NULL ? 0 : -1;
	if (rc == 0)
		fprintf(out,
		        "role %s reads the views of database %s, and nothing else\n"
		        "where it connects with a password, set one as %s: psql -d %s -c '\\password %s'\n"
		        "it connects with: host=%s port=%s dbname=%s user=%s\n",
		        name, PQdb(connection), PQuser(connection), PQdb(connection), PQgetvalue(result, 0, 0),
		        PQhost(connection), PQport(connection), PQdb(connection), name);
	PQclear(result);
	PQfinish(connection);
	return rc;
}
