package fakegitea

import (
	"net/http"
	"slices"
)

// moveColumns takes the ids of the columns in their new order.
func moveColumns(c *call, p *project) error {
	var in struct {
		IDs []int64 `json:"column_ids" binding:"Required"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	for _, k := range p.columns {
		if !slices.Contains(in.IDs, k.ID) {
			return fail(http.StatusUnprocessableEntity, "all columns must be named")
		}
	}
	for _, k := range p.columns {
		k.Sorting = int64(slices.Index(in.IDs, k.ID))
	}
	return c.done()
}

// moveCard moves an issue that is on the board to a column and a place in it.
func moveCard(c *call, p *project) error {
	var in struct {
		Column  int64 `json:"column_id" binding:"Required"`
		Sorting int   `json:"sorting"`
	}
	if err := c.bind(&in); err != nil {
		return err
	}
	is := c.cardOf()
	to, ok := find(p.columns, func(k *column) bool { return k.ID == in.Column })
	if is == nil || !ok || !slices.ContainsFunc(p.columns, func(k *column) bool { return slices.Contains(k.cards, is) }) {
		return errNotFound
	}
	p.place(is, to, in.Sorting)
	return c.done()
}
