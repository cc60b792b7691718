/* Reads of attributes in compiled modules: the place of a slot is remembered where it is read.
 *
 * mypyc reads an attribute of a class that it did not compile, as of a msgspec.Struct, by PyObject_GetAttr: the descriptor is looked
 * up by name each time. The interpreter remembers the slot's place at the instruction (LOAD_ATTR_SLOT of CPython's Python/ceval.c),
 * and holds it good for as long as the version of the type stays the same. This header does that for C that mypyc makes: it is
 * included before any other, and replaces one macro of mypyc's CPy.h.
 */
#ifndef PLAYHEAD_ATTRIBUTES_H
#define PLAYHEAD_ATTRIBUTES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <CPy.h>

#ifdef Py_GIL_DISABLED
#error "What a place remembers is several words, which the interpreter's lock keeps together"
#endif

/* Where one place of the code found its attribute last. CPython gives a version to one type only, and never 0. */
typedef struct {
    unsigned int version;
    Py_ssize_t offset;
    /* A place that reads by a variable name (getattr) reads other attributes later. A reference of its own: the address stays this name's. */
    PyObject *name;
} SeenSlot;

/* Reads by name, and remembers the place where the attribute is a plain slot. */
static CPy_NOINLINE PyObject *SeenSlot_look(PyObject *object, PyObject *name, SeenSlot *seen)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL || type->tp_getattro != PyObject_GenericGetAttr) {
        return value;
    }
    PyObject *descriptor = _PyType_Lookup(type, name);
    if (descriptor == NULL || !Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
        return value;
    }
    PyMemberDef *member = ((PyMemberDescrObject *)descriptor)->d_member;
    /* Without the flag a type keeps its version when it changes: so it is once CPython has given all versions. */
    if (PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) && member->type == T_OBJECT_EX &&
        PyType_IsSubtype(type, PyDescr_TYPE(descriptor))) {
        seen->offset = member->offset;
        seen->version = type->tp_version_tag;
        Py_XSETREF(seen->name, Py_NewRef(name));
    }
    return value;
}

static inline PyObject *SeenSlot_read(PyObject *object, PyObject *name, SeenSlot *seen)
{
    if (likely(seen->version != 0 && seen->version == Py_TYPE(object)->tp_version_tag && seen->name == name)) {
        PyObject *value = *(PyObject **)((char *)object + seen->offset);
        /* An empty slot is an AttributeError, which the look-up raises. */
        if (likely(value != NULL)) {
            return Py_NewRef(value);
        }
    }
    return SeenSlot_look(object, name, seen);
}

#undef CPyObject_GetAttr
#define CPyObject_GetAttr(object, name)                             \
    __extension__({                                                 \
        static SeenSlot playhead_seen;                              \
        SeenSlot_read((object), (name), &playhead_seen);            \
    })

#endif
