-- When the finalizer last published: the one thing of its book-keeping that the dashboard shows. One row, from its first start on.

CREATE VIEW serving.published AS SELECT published_at FROM finalizer.fence;
