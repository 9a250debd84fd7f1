#include "coordinator/client/credential.h"

#include <stdlib.h>
#include <string.h>

#include <munge.h>

static munge_ctx_t open_context(const char *socket, struct wlb_error *error)
{
	munge_ctx_t context = munge_ctx_create();
	if (context == NULL)
		wlb_fail(error, "munge: out of memory for a context");
	else if (socket != NULL && *socket != '\0')
		munge_ctx_set(context, MUNGE_OPT_SOCKET, socket);
	return context;
}

static const char *what_failed(munge_ctx_t context, munge_err_t rc)
{
	const char *detail = munge_ctx_strerror(context);
	return detail != NULL ? detail : munge_strerror(rc);
}

char *wlb_credential_make_for(const char *socket, uid_t reader, const void *payload, int length,
                              struct wlb_error *error)
{
	char *credential = NULL;
	munge_ctx_t context = open_context(socket, error);
	if (context == NULL)
		return NULL;
	if (reader != (uid_t)MUNGE_UID_ANY)
		munge_ctx_set(context, MUNGE_OPT_UID_RESTRICTION, reader);
	munge_err_t rc = munge_encode(&credential, context, payload, length);
	if (rc != EMUNGE_SUCCESS) {
		wlb_fail(error, "munge: %s; check that munged runs on this node", what_failed(context, rc));
		free(credential);
		credential = NULL;
	}
	munge_ctx_destroy(context);
	return credential;
}

char *wlb_credential_make(const char *socket, const void *payload, int length, struct wlb_error *error)
{
	return wlb_credential_make_for(socket, (uid_t)MUNGE_UID_ANY, payload, length, error);
}

int wlb_credential_check(const char *socket, const char *credential, const void *payload, int length, uid_t *uid,
                         struct wlb_error *error)
{
	void *found = NULL;
	int found_length = 0;
	gid_t gid;
	munge_ctx_t context = open_context(socket, error);
	if (context == NULL)
		return -1;
	munge_err_t rc = munge_decode(credential, context, &found, &found_length, uid, &gid);
	int result = 0;
	if (rc != EMUNGE_SUCCESS)
		result = wlb_fail(error, "munge: %s", what_failed(context, rc));
	else if (found_length != length || memcmp(found, payload, (size_t)length) != 0)
		result = wlb_fail(error, "the credential was made for another message: its payload differs");
	free(found);
	munge_ctx_destroy(context);
	return result;
}
