#include "coordinator/wlbd/database/db_hosts.h"

#include <errno.h>
#include <libpq-fe.h>
#include <netdb.h>
#include <pg_config.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wlbd_db_hosts_clear(struct wlbd_db_hosts *hosts)
{
	free(hosts->host);
	free(hosts->hostaddr);
	free(hosts->port);
	*hosts = (struct wlbd_db_hosts){0};
}

/* ---- what libpq would use -------------------------------------------------------------------- */

static int take(const PQconninfoOption *option, struct wlbd_db_hosts *hosts)
{
	char **to = strcmp(option->keyword, "host") == 0       ? &hosts->host
	            : strcmp(option->keyword, "hostaddr") == 0 ? &hosts->hostaddr
	            : strcmp(option->keyword, "port") == 0     ? &hosts->port
	                                                       : NULL;
	if (to == NULL || option->val == NULL)
		return 0;
	*to = strdup(option->val);
	return *to != NULL ? 0 : -1;
}

/* libpq tells the settings that result from the string, a service and the environment only of a connection. The refused
 * value makes libpq end after it has put the settings together, before it looks up a name or connects. */
int wlbd_db_hosts_read(const char *conninfo, struct wlbd_db_hosts *hosts, struct wlb_error *error)
{
	static const char *const keys[] = {"dbname", "target_session_attrs", NULL};
	const char *const values[] = {conninfo, "none: the settings are read", NULL};
	PGconn *connection = PQconnectStartParams(keys, values, 1);
	PQconninfoOption *options = PQconninfo(connection);
	int rc = options != NULL ? 0 : -1;
	*hosts = (struct wlbd_db_hosts){0};
	for (const PQconninfoOption *option = options; rc == 0 && option->keyword != NULL; option++)
		rc = take(option, hosts);
	PQconninfoFree(options);
	PQfinish(connection);
	if (rc == 0)
		return 0;
	wlbd_db_hosts_clear(hosts);
	return wlb_fail(error, "out of memory");
}

/* ---- elements of a list ---------------------------------------------------------------------- */

static int count_elements(const char *list)
{
	int count = list != NULL && *list != '\0';
	for (const char *c = list; count > 0 && *c != '\0'; c++)
		count += *c == ',';
	return count;
}

/* Returns a copy, "" where the list is shorter; NULL if out of memory. */
static char *copy_element(const char *list, int index)
{
	const char *begin = list != NULL ? list : "";
	for (; index > 0; index--)
		begin += strcspn(begin, ",") + (strchr(begin, ',') != NULL);
	return strndup(begin, strcspn(begin, ","));
}

static bool is_numeric(const char *host)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *found;
	if (getaddrinfo(host, NULL, &hints, &found) != 0)
		return false;
	freeaddrinfo(found);
	return true;
}

/* A path of a socket begins with / or, in the abstract name space, with @. */
static bool is_name(const char *host, const char *hostaddr)
{
	return *hostaddr == '\0' && *host != '\0' && *host != '/' && *host != '@' && !is_numeric(host);
}

bool wlbd_db_hosts_have_name(const struct wlbd_db_hosts *hosts)
{
	int count = count_elements(hosts->host);
	int addresses = count_elements(hosts->hostaddr), ports = count_elements(hosts->port);
	bool found = false;
	if ((addresses != 0 && addresses != count) || (ports > 1 && ports != count))
		return false;
	for (int i = 0; i < count && !found; i++) {
		char *host = copy_element(hosts->host, i), *hostaddr = copy_element(hosts->hostaddr, i);
		found = host != NULL && hostaddr != NULL && is_name(host, hostaddr);
		free(host);
		free(hostaddr);
	}
	return found;
}

/* ---- names become addresses ------------------------------------------------------------------ */

/* The lists that are written. */
struct writer {
	FILE *host, *hostaddr, *port;
	bool has_ports; /* a port for each host */
	int count;      /* of entries */
};

/* libpq takes "" as not given, and would then take the list of the connection string, which has another length. So the
 * default port is written out: where one host of two is left, the list of ports would be "". */
static void write_entry(struct writer *writer, const char *host, const char *hostaddr, const char *port)
{
	const char *comma = writer->count++ > 0 ? "," : "";
	fprintf(writer->host, "%s%s", comma, host);
	fprintf(writer->hostaddr, "%s%s", comma, hostaddr);
	if (writer->has_ports)
		fprintf(writer->port, "%s%s", comma, *port != '\0' ? port : DEF_PGPORT_STR);
}

static int write_addresses(struct writer *writer, const char *host, const char *port, struct wlb_error *error)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	char address[NI_MAXHOST];
	int count = 0;
	int rc = getaddrinfo(host, NULL, &hints, &found);
	if (rc != 0)
		return wlb_fail(error, "the database's host '%s' cannot be resolved: %s", host,
		                rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
	for (const struct addrinfo *a = found; a != NULL && count < WLBD_DB_ADDRESSES_MAX; a = a->ai_next) {
		if (getnameinfo(a->ai_addr, a->ai_addrlen, address, sizeof(address), NULL, 0, NI_NUMERICHOST) != 0)
			continue;
		write_entry(writer, host, address, port);
		count++;
	}
	freeaddrinfo(found);
	return count > 0 ? 0 : wlb_fail(error, "the database's host '%s' has no address", host);
}

/* Returns -1 if out of memory. A name that cannot be resolved is only omitted, with the reason in `error`. */
static int write_host(struct writer *writer, const struct wlbd_db_hosts *hosts, int index, struct wlb_error *error)
{
	char *host = copy_element(hosts->host, index);
	char *hostaddr = copy_element(hosts->hostaddr, index);
	char *port = copy_element(hosts->port, index);
	bool all = host != NULL && hostaddr != NULL && port != NULL;
	if (all && is_name(host, hostaddr))
		write_addresses(writer, host, port, error);
	else if (all)
		write_entry(writer, host, hostaddr, port);
	free(host);
	free(hostaddr);
	free(port);
	return all ? 0 : wlb_fail(error, "out of memory");
}

/* Returns -1 if out of memory. */
static int end_list(FILE *file)
{
	return file != NULL && fclose(file) == 0 ? 0 : -1;
}

int wlbd_db_hosts_resolve(const struct wlbd_db_hosts *hosts, struct wlbd_db_hosts *resolved, struct wlb_error *error)
{
	size_t sizes[3];
	int rc = 0, count = count_elements(hosts->host);
	*resolved = (struct wlbd_db_hosts){0};
	if (count > WLBD_DB_HOSTS_MAX)
		return wlb_fail(error, "the connection to the database has %d hosts; at most %d are possible", count,
		                WLBD_DB_HOSTS_MAX);
	struct writer writer = {.host = open_memstream(&resolved->host, &sizes[0]),
	                        .hostaddr = open_memstream(&resolved->hostaddr, &sizes[1]),
	                        .port = open_memstream(&resolved->port, &sizes[2]),
	                        .has_ports = count_elements(hosts->port) > 1};
	if (writer.host == NULL || writer.hostaddr == NULL || writer.port == NULL)
		rc = wlb_fail(error, "out of memory");
	for (int i = 0; i < count && rc == 0; i++)
		rc = write_host(&writer, hosts, i, error);
	if (rc == 0 && !writer.has_ports && hosts->port != NULL)
		fputs(hosts->port, writer.port);
	/* All three are closed whatever happens to one. */
	int ends = end_list(writer.host) + end_list(writer.hostaddr) + end_list(writer.port);
	if (rc == 0 && ends != 0)
		rc = wlb_fail(error, "out of memory");
	if (rc == 0 && writer.count > 0)
		return 0;
	wlbd_db_hosts_clear(resolved);
	return -1;
}
