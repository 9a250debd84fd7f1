#include "coordinator/db/conninfo.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool is_uri(const char *conninfo)
{
	return begins(conninfo, "postgresql://") || begins(conninfo, "postgres://");
}

/* libpq takes all that is neither pairs nor a URI for the name of a database, also USER:PASSWORD@HOST. */
static bool is_name(const char *conninfo)
{
	return strpbrk(conninfo, " \t\n\v\f\r=:/@") == NULL;
}

/* Returns NULL where libpq refuses it, or out of memory. libpq's message quotes the string. */
static PQconninfoOption *parse(const char *conninfo)
{
	char *message = NULL;
	PQconninfoOption *options = PQconninfoParse(conninfo, &message);
	PQfreemem(message);
	return options;
}

/* Returns "" for a key without a value. */
static const char *value_of(const PQconninfoOption *options, const char *key)
{
	for (; options->keyword != NULL; options++)
		if (strcmp(options->keyword, key) == 0 && options->val != NULL)
			return options->val;
	return "";
}

/* Paths of sockets, and abstract ones, may have any character. */
static bool is_host_list(const char *list)
{
	for (const char *host = list;; host += strcspn(host, ",") + 1) {
		size_t length = strcspn(host, ",");
		if (host[0] != '/' && host[0] != '@' && memchr(host, '@', length) != NULL)
			return false;
		if (host[length] == '\0')
			return true;
	}
}

static bool is_secret(const PQconninfoOption *option)
{
	return option->dispchar[0] == '*' && option->val != NULL && option->val[0] != '\0';
}

/* As in host=db,user=wlb,password=..., which is a host to libpq. */
static bool has_hidden_password(const PQconninfoOption *options)
{
	for (; options->keyword != NULL; options++)
		if (options->val != NULL && !is_secret(options) && strcasestr(options->val, "password=") != NULL)
			return true;
	return false;
}

static bool is_port_list(const char *list)
{
	return list[strspn(list, "0123456789,")] == '\0';
}

/* A '@' that is not the end of the user and the password is of a password: USER:P@SS@HOST, USER:P/SS@HOST. */
static bool is_complete(const char *conninfo, const PQconninfoOption *options)
{
	const char *name = value_of(options, "dbname");
	bool is_without_user = is_uri(conninfo) && *value_of(options, "user") == '\0';
	return is_host_list(value_of(options, "host")) && is_port_list(value_of(options, "port")) &&
	       !(is_without_user && strchr(name, '@') != NULL) && strstr(name, "://") == NULL &&
	       !has_hidden_password(options);
}

int wlb_conninfo_check(const char *conninfo, struct wlb_error *error)
{
	PQconninfoOption *options = is_name(conninfo) ? NULL : parse(conninfo);
	bool is_valid = is_name(conninfo) || (options != NULL && is_complete(conninfo, options));
	PQconninfoFree(options);
	if (is_valid)
		return 0;
	return wlb_fail(
		error,
		"libpq cannot read the connection string, which is not shown since it may have a password: it is "
		"KEY=VALUE pairs with blanks between them, and quotes around a value with a blank "
		"(password='two words', \\' for a quote), or postgresql://USER:PASSWORD@HOST/NAME, in which other "
		"characters than letters, digits and .-_ are written as %%20");
}

bool wlb_conninfo_has_secret(const char *conninfo)
{
	PQconninfoOption *options = is_name(conninfo) ? NULL : parse(conninfo);
	bool has = false;
	for (const PQconninfoOption *option = options; option != NULL && option->keyword != NULL; option++)
		has = has || is_secret(option);
	PQconninfoFree(options);
	return has;
}

void wlb_conninfo_passfile(const char *conninfo, char *path, size_t size)
{
	PQconninfoOption *options = is_name(conninfo) ? NULL : parse(conninfo);
	snprintf(path, size, "%s", options != NULL ? value_of(options, "passfile") : "");
	PQconninfoFree(options);
}
