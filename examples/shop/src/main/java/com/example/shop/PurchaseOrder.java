package com.example.shop;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.Id;
import jakarta.persistence.ManyToMany;
import java.time.Instant;
import java.util.List;

@Entity
public class PurchaseOrder {

    @Id
    @GeneratedValue
    private Long id;

    private Instant placedAt = Instant.now();

    @ManyToMany
    private List<Product> products;

    protected PurchaseOrder() {}

    public PurchaseOrder(List<Product> products) {
        this.products = products;
    }

    public Long getId() {
        return id;
    }

    public Instant getPlacedAt() {
        return placedAt;
    }

    public List<Product> getProducts() {
        return products;
    }
}
